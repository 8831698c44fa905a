// Addresses far outside of the memory, and values that are no numbers.
module TopModule(input clk, input [7:0] d, output reg [7:0] q);
  reg [7:0] rows [0:7];
  initial begin
    $readmemh("far.mem", rows);
    $readmemh("far.mem", rows, 0, 2147483647);
    $readmemh("far.mem", rows, -5, 4);
    $readmemh("unknown.mem", rows);
    q = rows[3];
  end
endmodule
