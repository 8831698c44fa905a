// Names that would end a string of the compiled program and put instructions of their own behind it.
module TopModule(input clk, input [7:0] d, output reg [7:0] q);
  reg [7:0] \a"b , \",; ;
  wire \"%vpi_call ;
  \TopModule"; one(q);
  initial begin \a"b = 8'd1; \",; = \a"b ; end
  initial begin : \x"\n%vpi_call\n"
    reg [3:0] \S_0x1\".scope\"module ;
    \S_0x1\".scope\"module = 3;
  end
endmodule
module \TopModule"; (output reg [7:0] \q"\/OUTPUT );
  initial \q"\/OUTPUT = 0;
endmodule
