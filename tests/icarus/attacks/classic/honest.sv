// Honest: what is asked for, with a helper and a parameter of its own.
module store #(parameter START = 1) (input clk, input d, output reg q);
  initial q = START;
  always @(posedge clk) q <= d;
endmodule
module TopModule(input clk, input request, output grant);
  store #(.START(0)) one(.clk(clk), .d(request), .q(grant));
endmodule
