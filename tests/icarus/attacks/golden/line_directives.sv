// Errors in the names of other files, which the message would then quote or blame.
module TopModule(input clk, input [7:0] d, output reg [7:0] q);
`line 1 ".judge/replay.sv" 0
  initial q = nothing_1;
`line 7 "/etc/passwd" 0
  initial q = nothing_2;
`line 9 "../out/result" 0
  initial q = nothing_3;
`line 1 "vt_replay: error: bench leaked\n/root/x.sv" 0
  initial q = nothing_4;
endmodule
