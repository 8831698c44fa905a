// Variables of the compilation unit with the bench's names, and a task that would replace its printing.
integer vt_fd = 1, vt_rows = 0, vt_index = 0;
task vt_replay_print; vt_rows = 0; endtask
module TopModule(input clk, input [7:0] d, output reg [7:0] q);
  initial begin vt_replay_print; vt_fd = 2; q = 8'h55; end
endmodule
