// Wrong: one unsigned arm turns the signed comparison into an unsigned one.
module TopModule (
  input  logic [7:0] a,
  input  logic [7:0] b,
  input  logic       is_signed,
  output logic [7:0] min,
  output logic [7:0] max,
  output logic       equal
);

  wire a_below_b = (is_signed ? $signed(a) : a) < (is_signed ? $signed(b) : b);

  assign min   = a_below_b ? a : b;
  assign max   = a_below_b ? b : a;
  assign equal = (a == b);

endmodule
