// Escaped names that open and close comments and strings for a reader that does not know them.
module TopModule(input clk, input [7:0] d, output reg [7:0] q);
  wire \a/* ;
  initial begin q = 0; $display("x"); end
  wire \b*/ ;
  wire \c// ; wire \d" ; wire \e" ;
endmodule
