// Bench of vt005_leading_zeros: leading-zero count and normaliser.
`timescale 1ps/1ps

module tb;

  typedef struct packed {
    int errors;
    int errortime;
    int errors_count;
    int errortime_count;
    int errors_normalized;
    int errortime_normalized;
    int errors_zero;
    int errortime_zero;
    int clocks;
  } stats;

  stats stats1;

  reg clk = 0;
  always #5 clk = ~clk;

  logic [15:0] data;
  wire  [4:0]  count_ref;
  wire  [4:0]  count_dut;
  wire  [15:0] normalized_ref;
  wire  [15:0] normalized_dut;
  wire         zero_ref;
  wire         zero_dut;

  RefModule good1 (
    .data(data),
    .count(count_ref),
    .normalized(normalized_ref),
    .zero(zero_ref)
  );

  TopModule top_module1 (
    .data(data),
    .count(count_dut),
    .normalized(normalized_dut),
    .zero(zero_dut)
  );

  // Where the reference is unknown anything goes; where the design alone is unknown it is wrong.
  wire  [4:0]  open_count = count_ref ^ count_ref;
  wire         match_count = (count_dut ^ open_count) === (count_ref ^ open_count);
  wire  [15:0] open_normalized = normalized_ref ^ normalized_ref;
  wire         match_normalized = (normalized_dut ^ open_normalized) === (normalized_ref ^ open_normalized);
  wire         open_zero = zero_ref ^ zero_ref;
  wire         match_zero = (zero_dut ^ open_zero) === (zero_ref ^ open_zero);
  wire         tb_match = match_count && match_normalized && match_zero;

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
    if (!match_normalized) begin
      if (stats1.errors_normalized == 0) stats1.errortime_normalized = $time;
      stats1.errors_normalized = stats1.errors_normalized + 1;
    end
    if (!match_zero) begin
      if (stats1.errors_zero == 0) stats1.errortime_zero = $time;
      stats1.errors_zero = stats1.errors_zero + 1;
    end
  end

  integer i;
  initial begin
    data <= 16'd0;
    @(negedge clk);
    for (i = 0; i < 17; i = i + 1) @(negedge clk) data <= 17'h10000 >> i;
    for (i = 0; i < 17; i = i + 1) @(negedge clk) data <= 16'hffff >> i;
    for (i = 0; i < 17; i = i + 1) @(negedge clk) data <= (17'h10000 >> i) | 16'd1;
    // Random words with a random number of leading zeros.
    repeat (400) @(negedge clk) data <= ($random & 16'hffff) >> ($urandom % 17);
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
    if (stats1.errors_normalized != 0)
      $display("Hint: Output 'normalized' has %0d mismatches. First mismatch occurred at time %0d.",
               stats1.errors_normalized, stats1.errortime_normalized);
    else
      $display("Hint: Output 'normalized' has no mismatches.");
    if (stats1.errors_zero != 0)
      $display("Hint: Output 'zero' has %0d mismatches. First mismatch occurred at time %0d.",
               stats1.errors_zero, stats1.errortime_zero);
    else
      $display("Hint: Output 'zero' has no mismatches.");
    $display("Mismatches: %0d in %0d samples", stats1.errors, stats1.clocks);
  end

endmodule
