// The same behind so many warnings that the telling one is cut off.
module many(input [63:0] a); endmodule
module TopModule #(parameter P = 0) (input clk, input request, output grant);
  defparam top_module1.P = 1;
  generate if (P) begin : g assign grant = good1.grant; end
  else begin : g assign grant = 0; end endgenerate
  genvar i;
  generate for (i = 0; i < 4000; i = i + 1) begin : a_rather_long_name_for_a_generate_block many m(1'b0); end endgenerate
endmodule
