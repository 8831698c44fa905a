// A function that calls itself until memory or stack are used up.
module TopModule(input clk, input [7:0] d, output reg [7:0] q);
  function automatic [31:0] deeper(input [31:0] n); deeper = deeper(n + 1) + n; endfunction
  always @(posedge clk) q <= deeper(d);
endmodule
