// Bench of vt013_tick_divider: programmable tick divider.
`timescale 1ps/1ps

module tb;

  typedef struct packed {
    int errors;
    int errortime;
    int errors_tick;
    int errortime_tick;
    int errors_phase;
    int errortime_phase;
    int clocks;
  } stats;

  stats stats1;

  reg clk = 0;
  always #5 clk = ~clk;

  logic       reset;
  logic       enable;
  logic [3:0] period;
  wire        tick_ref;
  wire        tick_dut;
  wire  [3:0] phase_ref;
  wire  [3:0] phase_dut;

  RefModule good1 (
    .clk(clk),
    .reset(reset),
    .enable(enable),
    .period(period),
    .tick(tick_ref),
    .phase(phase_ref)
  );

  TopModule top_module1 (
    .clk(clk),
    .reset(reset),
    .enable(enable),
    .period(period),
    .tick(tick_dut),
    .phase(phase_dut)
  );

  // Where the reference is unknown anything goes; where the design alone is unknown it is wrong.
  wire        open_tick = tick_ref ^ tick_ref;
  wire        match_tick = (tick_dut ^ open_tick) === (tick_ref ^ open_tick);
  wire  [3:0] open_phase = phase_ref ^ phase_ref;
  wire        match_phase = (phase_dut ^ open_phase) === (phase_ref ^ open_phase);
  wire        tb_match = match_tick && match_phase;

  always @(posedge clk or negedge clk) begin
    stats1.clocks = stats1.clocks + 1;
    if (!tb_match) begin
      if (stats1.errors == 0) stats1.errortime = $time;
      stats1.errors = stats1.errors + 1;
    end
    if (!match_tick) begin
      if (stats1.errors_tick == 0) stats1.errortime_tick = $time;
      stats1.errors_tick = stats1.errors_tick + 1;
    end
    if (!match_phase) begin
      if (stats1.errors_phase == 0) stats1.errortime_phase = $time;
      stats1.errors_phase = stats1.errors_phase + 1;
    end
  end

  integer i;
  initial begin
    reset <= 1'b1;
    enable <= 1'b0;
    period <= 4'd3;
    repeat (2) @(posedge clk);
    reset <= 1'b0;
    enable <= 1'b1;
    repeat (14) @(posedge clk);
    for (i = 0; i < 4; i = i + 1) begin
      period <= i;
      repeat (8) @(posedge clk);
    end
    period <= 4'd15;
    repeat (36) @(posedge clk);
    // The period drops below the counter.
    repeat (11) @(posedge clk);
    period <= 4'd4;
    repeat (12) @(posedge clk);
    repeat (350) @(posedge clk) begin
      enable <= ($random & 3) != 0;
      if (($urandom & 7) == 0) period <= ($random & 1) ? $random : ($random & 3);
      reset <= ($urandom & 31) == 0;
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
    if (stats1.errors_tick != 0)
      $display("Hint: Output 'tick' has %0d mismatches. First mismatch occurred at time %0d.",
               stats1.errors_tick, stats1.errortime_tick);
    else
      $display("Hint: Output 'tick' has no mismatches.");
    if (stats1.errors_phase != 0)
      $display("Hint: Output 'phase' has %0d mismatches. First mismatch occurred at time %0d.",
               stats1.errors_phase, stats1.errortime_phase);
    else
      $display("Hint: Output 'phase' has no mismatches.");
    $display("Mismatches: %0d in %0d samples", stats1.errors, stats1.clocks);
  end

endmodule
