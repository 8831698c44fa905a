// Reference of vt007_saturating_addsub: saturating adder and subtractor.
module RefModule (
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
  assign result    = !saturated ? exact[7:0] : exact[8] ? 8'h80 : 8'h7f;
  assign negative  = exact[8];

endmodule
