// Bench of vt021_combination_lock: combination lock with alarm.
`timescale 1ps/1ps

module tb;

  typedef struct packed {
    int errors;
    int errortime;
    int errors_unlocked;
    int errortime_unlocked;
    int errors_alarm;
    int errortime_alarm;
    int errors_progress;
    int errortime_progress;
    int clocks;
  } stats;

  stats stats1;

  reg clk = 0;
  always #5 clk = ~clk;

  logic       reset;
  logic       enter;
  logic [3:0] digit;
  logic       relock;
  wire        unlocked_ref;
  wire        unlocked_dut;
  wire        alarm_ref;
  wire        alarm_dut;
  wire  [1:0] progress_ref;
  wire  [1:0] progress_dut;

  RefModule good1 (
    .clk(clk),
    .reset(reset),
    .enter(enter),
    .digit(digit),
    .relock(relock),
    .unlocked(unlocked_ref),
    .alarm(alarm_ref),
    .progress(progress_ref)
  );

  TopModule top_module1 (
    .clk(clk),
    .reset(reset),
    .enter(enter),
    .digit(digit),
    .relock(relock),
    .unlocked(unlocked_dut),
    .alarm(alarm_dut),
    .progress(progress_dut)
  );

  // Where the reference is unknown anything goes; where the design alone is unknown it is wrong.
  wire        open_unlocked = unlocked_ref ^ unlocked_ref;
  wire        match_unlocked = (unlocked_dut ^ open_unlocked) === (unlocked_ref ^ open_unlocked);
  wire        open_alarm = alarm_ref ^ alarm_ref;
  wire        match_alarm = (alarm_dut ^ open_alarm) === (alarm_ref ^ open_alarm);
  wire  [1:0] open_progress = progress_ref ^ progress_ref;
  wire        match_progress = (progress_dut ^ open_progress) === (progress_ref ^ open_progress);
  wire        tb_match = match_unlocked && match_alarm && match_progress;

  always @(posedge clk or negedge clk) begin
    stats1.clocks = stats1.clocks + 1;
    if (!tb_match) begin
      if (stats1.errors == 0) stats1.errortime = $time;
      stats1.errors = stats1.errors + 1;
    end
    if (!match_unlocked) begin
      if (stats1.errors_unlocked == 0) stats1.errortime_unlocked = $time;
      stats1.errors_unlocked = stats1.errors_unlocked + 1;
    end
    if (!match_alarm) begin
      if (stats1.errors_alarm == 0) stats1.errortime_alarm = $time;
      stats1.errors_alarm = stats1.errors_alarm + 1;
    end
    if (!match_progress) begin
      if (stats1.errors_progress == 0) stats1.errortime_progress = $time;
      stats1.errors_progress = stats1.errors_progress + 1;
    end
  end

  task key(input [3:0] what);
    begin
      enter <= 1'b1;
      digit <= what;
      @(posedge clk) enter <= 1'b0;
      digit <= $random;
      repeat ($urandom & 1) @(posedge clk);
    end
  endtask

  task restart;
    begin
      reset <= 1'b1;
      @(posedge clk) reset <= 1'b0;
    end
  endtask

  task close;
    begin
      relock <= 1'b1;
      @(posedge clk) relock <= 1'b0;
      @(posedge clk);
    end
  endtask

  integer i;
  initial begin
    reset <= 1'b1;
    enter <= 1'b1;
    digit <= 4'd3;
    relock <= 1'b0;
    repeat (2) @(posedge clk);
    enter <= 1'b0;
    restart;
    // Opening, entries while open, closing.
    key(3); key(8); key(1);
    key(3); key(8); key(5); key(6); key(7);
    close;
    // A first digit in the place of the second is no new start; two errors, then success clears them.
    key(3); key(3); key(8);
    key(3); key(8); key(1);
    close;
    key(0); key(3); key(8); key(3);
    key(3); key(8); key(1);
    close;
    // Three errors with correct digits between them; entries and relock in the alarm.
    key(3); key(2); key(3); key(8); key(8); relock <= 1'b1; key(3); relock <= 1'b0; key(9);
    for (i = 0; i < 12; i = i + 1) begin
      enter <= 1'b1;
      digit <= (i[0]) ? 4'd8 : 4'd3;
      relock <= i[1];
      @(posedge clk);
    end
    enter <= 1'b0;
    relock <= 1'b0;
    repeat (3) @(posedge clk);
    // Errors again until the next alarm, and a reset within it.
    key(1); key(1); key(3); key(1); key(1);
    repeat (4) @(posedge clk);
    restart;
    key(3); key(8); key(1);
    close;
    key(7); key(7);
    restart;
    key(7); key(7); key(3); key(8); key(1);
    close;
    // Random digits, mostly those of the code in order.
    repeat (60) begin
      for (i = 0; i < 3; i = i + 1) begin
        enter <= ($random & 7) != 0;
        digit <= (($random & 7) == 0) ? $random : (i == 0) ? 4'd3 : (i == 1) ? 4'd8 : 4'd1;
        relock <= ($random & 7) == 0;
        reset <= ($urandom & 63) == 0;
        @(posedge clk);
      end
      enter <= 1'b0;
      if (($random & 1) == 0) close;
    end
    repeat (200) @(posedge clk) begin
      enter <= ($random & 3) != 0;
      digit <= (($random & 1) == 0) ? 4'd3 : (($random & 1) == 0) ? 4'd8 : 4'd1;
      relock <= ($random & 3) == 0;
      reset <= ($urandom & 63) == 0;
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
    if (stats1.errors_unlocked != 0)
      $display("Hint: Output 'unlocked' has %0d mismatches. First mismatch occurred at time %0d.",
               stats1.errors_unlocked, stats1.errortime_unlocked);
    else
      $display("Hint: Output 'unlocked' has no mismatches.");
    if (stats1.errors_alarm != 0)
      $display("Hint: Output 'alarm' has %0d mismatches. First mismatch occurred at time %0d.",
               stats1.errors_alarm, stats1.errortime_alarm);
    else
      $display("Hint: Output 'alarm' has no mismatches.");
    if (stats1.errors_progress != 0)
      $display("Hint: Output 'progress' has %0d mismatches. First mismatch occurred at time %0d.",
               stats1.errors_progress, stats1.errortime_progress);
    else
      $display("Hint: Output 'progress' has no mismatches.");
    $display("Mismatches: %0d in %0d samples", stats1.errors, stats1.clocks);
  end

endmodule
