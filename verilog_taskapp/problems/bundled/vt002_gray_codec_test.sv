// Bench of vt002_gray_codec: Gray code converter.
`timescale 1ps/1ps

module tb;

  typedef struct packed {
    int errors;
    int errortime;
    int errors_out;
    int errortime_out;
    int clocks;
  } stats;

  stats stats1;

  reg clk = 0;
  always #5 clk = ~clk;

  logic       to_gray;
  logic [5:0] in;
  wire  [5:0] out_ref;
  wire  [5:0] out_dut;

  RefModule good1 (
    .to_gray(to_gray),
    .in(in),
    .out(out_ref)
  );

  TopModule top_module1 (
    .to_gray(to_gray),
    .in(in),
    .out(out_dut)
  );

  // Where the reference is unknown anything goes; where the design alone is unknown it is wrong.
  wire  [5:0] open_out = out_ref ^ out_ref;
  wire        match_out = (out_dut ^ open_out) === (out_ref ^ open_out);
  wire        tb_match = match_out;

  always @(posedge clk) begin
    stats1.clocks = stats1.clocks + 1;
    if (!tb_match) begin
      if (stats1.errors == 0) stats1.errortime = $time;
      stats1.errors = stats1.errors + 1;
    end
    if (!match_out) begin
      if (stats1.errors_out == 0) stats1.errortime_out = $time;
      stats1.errors_out = stats1.errors_out + 1;
    end
  end

  integer i;
  initial begin
    to_gray <= 1'b0;
    in <= 6'd0;
    for (i = 0; i < 128; i = i + 1) @(negedge clk) {to_gray, in} <= i[6:0];
    repeat (150) @(negedge clk) begin
      in <= $random;
      to_gray <= $urandom;
    end
    @(negedge clk);
    #1 $finish;
  end

  initial begin
    #200000;
    $display("TIMEOUT");
    $finish;
  end

  final begin
    if (stats1.errors_out != 0)
      $display("Hint: Output 'out' has %0d mismatches. First mismatch occurred at time %0d.",
               stats1.errors_out, stats1.errortime_out);
    else
      $display("Hint: Output 'out' has no mismatches.");
    $display("Mismatches: %0d in %0d samples", stats1.errors, stats1.clocks);
  end

endmodule
