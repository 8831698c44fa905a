// Wrong: equality leaves out the top bit.
module TopModule (
  input  logic [7:0] a,
  input  logic [7:0] b,
  input  logic       is_signed,
  output logic [7:0] min,
  output logic [7:0] max,
  output logic       equal
);

  wire a_below_b = is_signed ? ($signed(a) < $signed(b)) : (a < b);

  assign min   = a_below_b ? a : b;
  assign max   = a_below_b ? b : a;
  assign equal = (a[6:0] == b[6:0]);

endmodule
