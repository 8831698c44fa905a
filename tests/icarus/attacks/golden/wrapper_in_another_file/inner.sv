module inner(output reg [7:0] q);
  initial begin #1 vt_in1 = 0; vt_rows = 0; q = vt_out0; end
endmodule
