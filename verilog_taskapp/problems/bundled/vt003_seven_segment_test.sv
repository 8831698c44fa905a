// Bench of vt003_seven_segment: seven-segment decoder with lamp test.
`timescale 1ps/1ps

module tb;

  typedef struct packed {
    int errors;
    int errortime;
    int errors_seg;
    int errortime_seg;
    int clocks;
  } stats;

  stats stats1;

  reg clk = 0;
  always #5 clk = ~clk;

  logic [3:0] digit;
  logic       blank;
  logic       lamp_test;
  logic       active_low;
  wire  [6:0] seg_ref;
  wire  [6:0] seg_dut;

  RefModule good1 (
    .digit(digit),
    .blank(blank),
    .lamp_test(lamp_test),
    .active_low(active_low),
    .seg(seg_ref)
  );

  TopModule top_module1 (
    .digit(digit),
    .blank(blank),
    .lamp_test(lamp_test),
    .active_low(active_low),
    .seg(seg_dut)
  );

  // Where the reference is unknown anything goes; where the design alone is unknown it is wrong.
  wire  [6:0] open_seg = seg_ref ^ seg_ref;
  wire        match_seg = (seg_dut ^ open_seg) === (seg_ref ^ open_seg);
  wire        tb_match = match_seg;

  always @(posedge clk) begin
    stats1.clocks = stats1.clocks + 1;
    if (!tb_match) begin
      if (stats1.errors == 0) stats1.errortime = $time;
      stats1.errors = stats1.errors + 1;
    end
    if (!match_seg) begin
      if (stats1.errors_seg == 0) stats1.errortime_seg = $time;
      stats1.errors_seg = stats1.errors_seg + 1;
    end
  end

  integer i;
  initial begin
    digit <= 4'h0;
    blank <= 1'b0;
    lamp_test <= 1'b0;
    active_low <= 1'b0;
    for (i = 0; i < 128; i = i + 1) @(negedge clk) {lamp_test, blank, active_low, digit} <= i[6:0];
    repeat (120) @(negedge clk) begin
      digit <= $random;
      active_low <= $random;
      blank <= ($urandom & 3) == 0;
      lamp_test <= ($urandom & 7) == 0;
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
    if (stats1.errors_seg != 0)
      $display("Hint: Output 'seg' has %0d mismatches. First mismatch occurred at time %0d.",
               stats1.errors_seg, stats1.errortime_seg);
    else
      $display("Hint: Output 'seg' has no mismatches.");
    $display("Mismatches: %0d in %0d samples", stats1.errors, stats1.clocks);
  end

endmodule
