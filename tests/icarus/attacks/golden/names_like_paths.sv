// Escaped names that spell hierarchical paths of the bench.
module TopModule(input clk, input [7:0] d, output reg [7:0] q);
  wire \vt_replay.vt_dut ;
  reg [7:0] \vt_replay.vt_out0 = 0;
  generate if (1) begin : \vt_replay.vt_dut.x
    reg [7:0] q = 0;
  end endgenerate
  initial q = \vt_replay.vt_out0 ;
endmodule
module \vt_replay.vt_dut (input a); endmodule
