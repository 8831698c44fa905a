// Wrong: negative numbers are ordered by their magnitude.
module TopModule (
  input  logic [7:0] a,
  input  logic [7:0] b,
  input  logic       is_signed,
  output logic [7:0] min,
  output logic [7:0] max,
  output logic       equal
);

  wire a_below_b = is_signed ? (a[7] != b[7] ? a[7] : a[7] ? (a[6:0] > b[6:0]) : (a[6:0] < b[6:0])) : (a < b);

  assign min   = a_below_b ? a : b;
  assign max   = a_below_b ? b : a;
  assign equal = (a == b);

endmodule
