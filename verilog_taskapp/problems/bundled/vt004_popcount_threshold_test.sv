// Bench of vt004_popcount_threshold: population count with threshold.
`timescale 1ps/1ps

module tb;

  typedef struct packed {
    int errors;
    int errortime;
    int errors_count;
    int errortime_count;
    int errors_above;
    int errortime_above;
    int errors_exact;
    int errortime_exact;
    int clocks;
  } stats;

  stats stats1;

  reg clk = 0;
  always #5 clk = ~clk;

  logic [11:0] data;
  logic [3:0]  threshold;
  wire  [3:0]  count_ref;
  wire  [3:0]  count_dut;
  wire         above_ref;
  wire         above_dut;
  wire         exact_ref;
  wire         exact_dut;

  RefModule good1 (
    .data(data),
    .threshold(threshold),
    .count(count_ref),
    .above(above_ref),
    .exact(exact_ref)
  );

  TopModule top_module1 (
    .data(data),
    .threshold(threshold),
    .count(count_dut),
    .above(above_dut),
    .exact(exact_dut)
  );

  // Where the reference is unknown anything goes; where the design alone is unknown it is wrong.
  wire  [3:0]  open_count = count_ref ^ count_ref;
  wire         match_count = (count_dut ^ open_count) === (count_ref ^ open_count);
  wire         open_above = above_ref ^ above_ref;
  wire         match_above = (above_dut ^ open_above) === (above_ref ^ open_above);
  wire         open_exact = exact_ref ^ exact_ref;
  wire         match_exact = (exact_dut ^ open_exact) === (exact_ref ^ open_exact);
  wire         tb_match = match_count && match_above && match_exact;

  always @(posedge clk) begin
    stats1.clocks = stats1.clocks + 1;
    if (!tb_match) begin
      if (stats1.errors == 0) stats1.errortime = $time;
      stats1.errors = stats1.errors + 1;
    end
    if (!match_count) begin
      if (stats1.errors_count == 0) stats1.errortime_count = $time;
      stats1.errors_count = stats1.errors_count + 1;
    end
    if (!match_above) begin
      if (stats1.errors_above == 0) stats1.errortime_above = $time;
      stats1.errors_above = stats1.errors_above + 1;
    end
    if (!match_exact) begin
      if (stats1.errors_exact == 0) stats1.errortime_exact = $time;
      stats1.errors_exact = stats1.errors_exact + 1;
    end
  end

  integer i;
  initial begin
    data <= 12'd0;
    threshold <= 4'd0;
    // Every count once as a run of ones, against every threshold.
    for (i = 0; i < 208; i = i + 1) @(negedge clk) begin
      data <= 12'hfff >> (i / 16);
      threshold <= i[3:0];
    end
    for (i = 0; i < 12; i = i + 1) @(negedge clk) begin
      data <= 12'd1 << i;
      threshold <= 4'd1;
    end
    repeat (250) @(negedge clk) begin
      data <= $random;
      threshold <= $urandom;
    end
    repeat (100) @(negedge clk) begin
      data <= $random | $random | $random;
      threshold <= 4'd8 + ($urandom % 5);
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
    if (stats1.errors_count != 0)
      $display("Hint: Output 'count' has %0d mismatches. First mismatch occurred at time %0d.",
               stats1.errors_count, stats1.errortime_count);
    else
      $display("Hint: Output 'count' has no mismatches.");
    if (stats1.errors_above != 0)
      $display("Hint: Output 'above' has %0d mismatches. First mismatch occurred at time %0d.",
               stats1.errors_above, stats1.errortime_above);
    else
      $display("Hint: Output 'above' has no mismatches.");
    if (stats1.errors_exact != 0)
      $display("Hint: Output 'exact' has %0d mismatches. First mismatch occurred at time %0d.",
               stats1.errors_exact, stats1.errortime_exact);
    else
      $display("Hint: Output 'exact' has no mismatches.");
    $display("Mismatches: %0d in %0d samples", stats1.errors, stats1.clocks);
  end

endmodule
