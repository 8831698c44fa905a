// Ends the simulation from functions, from a declaration's initialiser and from a continuous assignment.
module TopModule(input clk, input [7:0] d, output reg [7:0] q);
  function integer stop(input integer n); begin stop = n; $finish; end endfunction
  integer early = stop(3);
  wire [31:0] later = stop(d);
  initial q = later;
endmodule
