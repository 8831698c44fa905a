// Honest: an output whose indices are negative.
module TopModule(input clk, input [7:0] d, output reg [0:-7] q);
  initial q = 0;
  always @(posedge clk) q <= d;
endmodule
