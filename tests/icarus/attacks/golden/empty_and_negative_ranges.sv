// Ranges without a sense: zero width, backwards, negative, larger than any vector.
module TopModule(input clk, input [7:0] d, output reg [7:0] q);
  reg [-1:0] a; reg [0:0] b [0:-1]; reg [7:8] c;
  initial q = 0;
  always @(posedge clk) b[0] = d[-1];
endmodule
