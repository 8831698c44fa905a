// Right: gates instead of a plus sign.
module TopModule (
  input  logic clk,
  input  logic reset,
  input  logic valid,
  input  logic first,
  input  logic a,
  input  logic b,
  output logic sum,
  output logic carry
);

  wire c = carry & ~first;

  always @(posedge clk) begin
    sum <= ~reset & (valid ? a ^ b ^ c : sum);
    carry <= ~reset & (valid ? (a & b) | (a & c) | (b & c) : carry);
  end

endmodule
