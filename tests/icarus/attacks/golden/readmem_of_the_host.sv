// Memory files outside of the workspace.
module TopModule(input clk, input [7:0] d, output reg [7:0] q);
  reg [7:0] rows [0:255];
  initial begin
    $readmemh("/etc/passwd", rows);
    $readmemh("/proc/self/maps", rows);
    $readmemh("../../../lock", rows);
    $readmemh(".judge/program.vvp", rows);
    $readmemh("/dev/zero", rows);
    q = rows[0];
  end
endmodule
