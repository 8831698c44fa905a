// A bind, a configuration and an alias that would put something between the bench and the design.
module spy(input [7:0] q); assign vt_replay.vt_out0 = 0; endmodule
bind vt_replay spy spy1(.q(vt_out0));
config other; design vt_replay; instance vt_replay.vt_dut use work.spy; endconfig
module TopModule(input clk, input [7:0] d, output reg [7:0] q);
  alias q = vt_replay.vt_out0;
endmodule
