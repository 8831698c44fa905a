// The same with the keyword made by the preprocessor, and the message in another file's name.
`define PASTE(a, b) a``b
module TopModule #(parameter P = 0) (input clk, input request, output grant);
`line 1 "elsewhere.sv" 0
  `PASTE(def,param) top_module1.P = 1;
  generate if (P) begin : g assign grant = good1.grant; end
  else begin : g assign grant = 0; end endgenerate
endmodule
