// A chain of headers that ends at a folder, at a device and at a file of memory contents.
`include "one/two.vh"
module TopModule(input clk, input [7:0] d, output reg [7:0] q);
  initial q = 0;
endmodule
