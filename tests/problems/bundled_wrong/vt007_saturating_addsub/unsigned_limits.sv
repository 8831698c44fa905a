// Wrong: it clamps as if the operands were unsigned.
module TopModule (
  input  logic [7:0] a,
  input  logic [7:0] b,
  input  logic       sub,
  output logic [7:0] result,
  output logic       saturated,
  output logic       negative
);

  wire signed [8:0] x     = {1'b0, a};
  wire signed [8:0] y     = {1'b0, b};
  wire signed [8:0] exact = sub ? x - y : x + y;

  assign saturated = exact[8];
  assign result    = !saturated ? exact[7:0] : sub ? 8'h00 : 8'hff;
  assign negative  = result[7];

endmodule
