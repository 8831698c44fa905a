// Right: one equation for each bit.
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

  reg  [7:0] r;
  wire       hold = ~valid & ~shift;
  wire       f = valid & (r[7] ^ bit_in);

  assign crc = r;
  assign bit_out = r[7];
  assign clean = ~|r;

  always @(posedge clk)
    if (reset | clear) begin
      r <= ~8'd0;
    end else if (~hold) begin
      r[7] <= r[6];
      r[6] <= r[5];
      r[5] <= r[4] ^ f;
      r[4] <= r[3] ^ f;
      r[3] <= r[2];
      r[2] <= r[1];
      r[1] <= r[0];
      r[0] <= f;
    end

endmodule
