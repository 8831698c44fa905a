// A time scale in which one delay of the design lasts longer than the stimulus.
`timescale 100s/100s
module TopModule(input clk, input [7:0] d, output reg [7:0] q);
  initial q = 0;
  always @(posedge clk) #1 q = d;
endmodule
