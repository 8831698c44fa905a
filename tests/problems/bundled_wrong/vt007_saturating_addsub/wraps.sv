// Wrong: the result wraps around.
module TopModule (
  input  logic [7:0] a,
  input  logic [7:0] b,
  input  logic       sub,
  output logic [7:0] result,
  output logic       saturated,
  output logic       negative
);

  wire signed [8:0] x     = {a[7], a};
  wire signed [8:0] y     = {b[7], b};
  wire signed [8:0] exact = sub ? x - y : x + y;

  assign saturated = exact[8] ^ exact[7];
  assign result    = exact[7:0];
  assign negative  = exact[8];

endmodule
