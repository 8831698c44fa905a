// Wrong: unsigned operands are compared as signed ones.
module TopModule (
  input  logic [7:0] a,
  input  logic [7:0] b,
  input  logic       is_signed,
  output logic [7:0] min,
  output logic [7:0] max,
  output logic       equal
);

  wire a_below_b = $signed(a) < $signed(b);

  assign min   = a_below_b ? a : b;
  assign max   = a_below_b ? b : a;
  assign equal = (a == b);

endmodule
