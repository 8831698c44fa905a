// Honest: names that happen to be the bench's, an include, a table from a memory file, a package.
`include "types.svh"
module TopModule(input clk, input [7:0] d, output byte_t q);
  import vt_names::*;
  reg [7:0] vt_memory [0:255];
  integer vt_index;
  initial begin $readmemh("identity.mem", vt_memory, 0, 3); for (vt_index = vt_first; vt_index < 256; vt_index++) vt_memory[vt_index] = vt_index; end
  initial q = 0;
  always @(posedge clk) q <= vt_memory[d];
endmodule
