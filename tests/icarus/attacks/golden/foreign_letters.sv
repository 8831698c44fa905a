// Names in other alphabets and controls that break lines for some readers.
module TopModule(input clk, input [7:0] d, output reg [7:0] q);
  wire \é , \шина , \ñ‮ ;
  reg [7:0] \q  = 0;
  initial q = \q ;
endmodule
