// Wrong: the register shifts right with the reflected polynomial.
module TopModule (
  input  logic       clk,
  input  logic       reset,
  input  logic       clear,
  input  logic       valid,
  input  logic       bit_in,
  input  logic       shift,
  output logic [7:0] crc,
  output logic       bit_out,
  output logic       clean
);

  wire feedback = crc[0] ^ bit_in;

  always_ff @(posedge clk) begin
    if (reset || clear)
      crc <= 8'hff;
    else if (valid)
      crc <= {1'b0, crc[7:1]} ^ (feedback ? 8'h8c : 8'h00);
    else if (shift)
      crc <= {crc[6:0], 1'b0};
  end

  assign bit_out = crc[7];
  assign clean = (crc == 8'h00);

endmodule
