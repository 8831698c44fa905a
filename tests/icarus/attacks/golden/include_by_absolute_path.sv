// File names put together by macros: of the host, of the process, of the data set.
`define ETC "/etc/passwd"
`define SELF "/proc/self/environ"
`include `ETC
`include `SELF
`include "/proc/1/cmdline"
`include "../../../../../../../../etc/hostname"
`include "/dev/stdin"
module TopModule(input clk, input [7:0] d, output reg [7:0] q);
  initial q = 0;
endmodule
