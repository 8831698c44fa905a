// Bench of vt012_reset_synchroniser: reset synchroniser with uptime.
`timescale 1ps/1ps

module tb;

  typedef struct packed {
    int errors;
    int errortime;
    int errors_rst_n;
    int errortime_rst_n;
    int errors_uptime;
    int errortime_uptime;
    int clocks;
  } stats;

  stats stats1;

  reg clk = 0;
  always #5 clk = ~clk;

  logic       arst_n;
  wire        rst_n_ref;
  wire        rst_n_dut;
  wire  [3:0] uptime_ref;
  wire  [3:0] uptime_dut;

  RefModule good1 (
    .clk(clk),
    .arst_n(arst_n),
    .rst_n(rst_n_ref),
    .uptime(uptime_ref)
  );

  TopModule top_module1 (
    .clk(clk),
    .arst_n(arst_n),
    .rst_n(rst_n_dut),
    .uptime(uptime_dut)
  );

  // Where the reference is unknown anything goes; where the design alone is unknown it is wrong.
  wire        open_rst_n = rst_n_ref ^ rst_n_ref;
  wire        match_rst_n = (rst_n_dut ^ open_rst_n) === (rst_n_ref ^ open_rst_n);
  wire  [3:0] open_uptime = uptime_ref ^ uptime_ref;
  wire        match_uptime = (uptime_dut ^ open_uptime) === (uptime_ref ^ open_uptime);
  wire        tb_match = match_rst_n && match_uptime;

  always @(posedge clk or negedge clk) begin
    stats1.clocks = stats1.clocks + 1;
    if (!tb_match) begin
      if (stats1.errors == 0) stats1.errortime = $time;
      stats1.errors = stats1.errors + 1;
    end
    if (!match_rst_n) begin
      if (stats1.errors_rst_n == 0) stats1.errortime_rst_n = $time;
      stats1.errors_rst_n = stats1.errors_rst_n + 1;
    end
    if (!match_uptime) begin
      if (stats1.errors_uptime == 0) stats1.errortime_uptime = $time;
      stats1.errors_uptime = stats1.errors_uptime + 1;
    end
  end

  integer i;
  integer high_cycles;
  initial begin
    arst_n <= 1'b0;
    repeat (2) @(negedge clk);
    arst_n <= 1'b1;
    repeat (24) @(negedge clk);
    // Releases that are cut short after one to five edges.
    for (i = 1; i < 6; i = i + 1) begin
      arst_n <= 1'b0;
      @(negedge clk) arst_n <= 1'b1;
      repeat (i) @(negedge clk);
    end
    // Low only from just after a rising edge to the falling one: no clock edge sees it.
    repeat (12) begin
      repeat (3 + ($urandom % 6)) @(posedge clk);
      arst_n <= 1'b0;
      @(negedge clk) arst_n <= 1'b1;
    end
    repeat (30) begin
      high_cycles = ($random & 3) == 0 ? 18 + ($urandom % 6) : ($urandom % 9);
      repeat (high_cycles) @(negedge clk);
      arst_n <= 1'b0;
      repeat (1 + ($random & 1)) @(negedge clk);
      arst_n <= 1'b1;
    end
    repeat (22) @(negedge clk);
    #1 $finish;
  end

  initial begin
    #200000;
    $display("TIMEOUT");
    $finish;
  end

  final begin
    if (stats1.errors_rst_n != 0)
      $display("Hint: Output 'rst_n' has %0d mismatches. First mismatch occurred at time %0d.",
               stats1.errors_rst_n, stats1.errortime_rst_n);
    else
      $display("Hint: Output 'rst_n' has no mismatches.");
    if (stats1.errors_uptime != 0)
      $display("Hint: Output 'uptime' has %0d mismatches. First mismatch occurred at time %0d.",
               stats1.errors_uptime, stats1.errortime_uptime);
    else
      $display("Hint: Output 'uptime' has no mismatches.");
    $display("Mismatches: %0d in %0d samples", stats1.errors, stats1.clocks);
  end

endmodule
