// Headers that include each other for ever.
`include "a.vh"
module TopModule(input clk, input [7:0] d, output reg [7:0] q);
  initial q = 0;
endmodule
