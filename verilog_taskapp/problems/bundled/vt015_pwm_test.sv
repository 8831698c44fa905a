// Bench of vt015_pwm: Double-buffered PWM.
`timescale 1ps/1ps

module tb;

  typedef struct packed {
    int errors;
    int errortime;
    int errors_pwm;
    int errortime_pwm;
    int errors_period_start;
    int errortime_period_start;
    int clocks;
  } stats;

  stats stats1;

  reg clk = 0;
  always #5 clk = ~clk;

  logic       rst_n;
  logic       write;
  logic [4:0] duty;
  wire        pwm_ref;
  wire        pwm_dut;
  wire        period_start_ref;
  wire        period_start_dut;

  RefModule good1 (
    .clk(clk),
    .rst_n(rst_n),
    .write(write),
    .duty(duty),
    .pwm(pwm_ref),
    .period_start(period_start_ref)
  );

  TopModule top_module1 (
    .clk(clk),
    .rst_n(rst_n),
    .write(write),
    .duty(duty),
    .pwm(pwm_dut),
    .period_start(period_start_dut)
  );

  // Where the reference is unknown anything goes; where the design alone is unknown it is wrong.
  wire        open_pwm = pwm_ref ^ pwm_ref;
  wire        match_pwm = (pwm_dut ^ open_pwm) === (pwm_ref ^ open_pwm);
  wire        open_period_start = period_start_ref ^ period_start_ref;
  wire        match_period_start = (period_start_dut ^ open_period_start) === (period_start_ref ^ open_period_start);
  wire        tb_match = match_pwm && match_period_start;

  always @(posedge clk or negedge clk) begin
    stats1.clocks = stats1.clocks + 1;
    if (!tb_match) begin
      if (stats1.errors == 0) stats1.errortime = $time;
      stats1.errors = stats1.errors + 1;
    end
    if (!match_pwm) begin
      if (stats1.errors_pwm == 0) stats1.errortime_pwm = $time;
      stats1.errors_pwm = stats1.errors_pwm + 1;
    end
    if (!match_period_start) begin
      if (stats1.errors_period_start == 0) stats1.errortime_period_start = $time;
      stats1.errors_period_start = stats1.errors_period_start + 1;
    end
  end

  integer i;
  initial begin
    rst_n <= 1'b0;
    write <= 1'b1;
    duty <= 5'd9;
    repeat (2) @(posedge clk);
    rst_n <= 1'b1;
    write <= 1'b0;
    repeat (20) @(posedge clk);
    // A write at every place within a period, the last step included.
    for (i = 0; i < 18; i = i + 1) begin
      write <= 1'b1;
      duty <= (i == 5) ? 5'd0 : (i == 6) ? 5'd16 : (i == 7) ? 5'd31 : (i == 8) ? 5'd15 : $urandom;
      @(posedge clk);
      write <= 1'b0;
      duty <= $random;
      repeat (16) @(posedge clk);
    end
    repeat (400) @(posedge clk) begin
      write <= ($random & 7) == 0;
      duty <= ($random & 1) ? $random : 5'd13 + ($random & 7);
      rst_n <= ($urandom % 80) != 0;
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
    if (stats1.errors_pwm != 0)
      $display("Hint: Output 'pwm' has %0d mismatches. First mismatch occurred at time %0d.",
               stats1.errors_pwm, stats1.errortime_pwm);
    else
      $display("Hint: Output 'pwm' has no mismatches.");
    if (stats1.errors_period_start != 0)
      $display("Hint: Output 'period_start' has %0d mismatches. First mismatch occurred at time %0d.",
               stats1.errors_period_start, stats1.errortime_period_start);
    else
      $display("Hint: Output 'period_start' has no mismatches.");
    $display("Mismatches: %0d in %0d samples", stats1.errors, stats1.clocks);
  end

endmodule
