// Attributes that steer the compiler's treatment of modules, cells and processes.
(* ivl_synthesis_cell, ivl_do_not_elide = 1, blackbox = "vt_replay" *)
module TopModule(input clk, input [7:0] d, output reg [7:0] q);
  (* ivl_synthesis_off *) initial q = 0;
  (* ivl_synthesis_on, full_case, parallel_case *) always @(posedge clk) case (1'b1) 1'b0: q <= d; endcase
endmodule
