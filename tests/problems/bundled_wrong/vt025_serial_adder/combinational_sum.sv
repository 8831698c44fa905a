// Wrong: the sum is not registered.
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

  logic c;

  assign sum = a ^ b ^ (c & ~first);
  assign carry = c;

  always_ff @(posedge clk)
    if (reset)
      c <= 1'b0;
    else if (valid)
      c <= (a & b) | ((a | b) & c & ~first);

endmodule
