// Wrong: clear is ignored when a bit comes.
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

  wire feedback = crc[7] ^ bit_in;

  always_ff @(posedge clk) begin
    if (reset || (clear && !valid))
      crc <= 8'hff;
    else if (valid)
      crc <= {crc[6:0], 1'b0} ^ (feedback ? 8'h31 : 8'h00);
    else if (shift)
      crc <= {crc[6:0], 1'b0};
  end

  assign bit_out = crc[7];
  assign clean = (crc == 8'h00);

endmodule
