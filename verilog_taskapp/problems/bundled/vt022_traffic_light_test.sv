// Bench of vt022_traffic_light: traffic light with side road and crossing.
`timescale 1ps/1ps

module tb;

  typedef struct packed {
    int errors;
    int errortime;
    int errors_main_light;
    int errortime_main_light;
    int errors_side_light;
    int errortime_side_light;
    int errors_walk_on;
    int errortime_walk_on;
    int clocks;
  } stats;

  stats stats1;

  reg clk = 0;
  always #5 clk = ~clk;

  logic       rst_n;
  logic       car;
  logic       walk;
  wire  [2:0] main_light_ref;
  wire  [2:0] main_light_dut;
  wire  [2:0] side_light_ref;
  wire  [2:0] side_light_dut;
  wire        walk_on_ref;
  wire        walk_on_dut;

  RefModule good1 (
    .clk(clk),
    .rst_n(rst_n),
    .car(car),
    .walk(walk),
    .main_light(main_light_ref),
    .side_light(side_light_ref),
    .walk_on(walk_on_ref)
  );

  TopModule top_module1 (
    .clk(clk),
    .rst_n(rst_n),
    .car(car),
    .walk(walk),
    .main_light(main_light_dut),
    .side_light(side_light_dut),
    .walk_on(walk_on_dut)
  );

  // Where the reference is unknown anything goes; where the design alone is unknown it is wrong.
  wire  [2:0] open_main_light = main_light_ref ^ main_light_ref;
  wire        match_main_light = (main_light_dut ^ open_main_light) === (main_light_ref ^ open_main_light);
  wire  [2:0] open_side_light = side_light_ref ^ side_light_ref;
  wire        match_side_light = (side_light_dut ^ open_side_light) === (side_light_ref ^ open_side_light);
  wire        open_walk_on = walk_on_ref ^ walk_on_ref;
  wire        match_walk_on = (walk_on_dut ^ open_walk_on) === (walk_on_ref ^ open_walk_on);
  wire        tb_match = match_main_light && match_side_light && match_walk_on;

  always @(posedge clk or negedge clk) begin
    stats1.clocks = stats1.clocks + 1;
    if (!tb_match) begin
      if (stats1.errors == 0) stats1.errortime = $time;
      stats1.errors = stats1.errors + 1;
    end
    if (!match_main_light) begin
      if (stats1.errors_main_light == 0) stats1.errortime_main_light = $time;
      stats1.errors_main_light = stats1.errors_main_light + 1;
    end
    if (!match_side_light) begin
      if (stats1.errors_side_light == 0) stats1.errortime_side_light = $time;
      stats1.errors_side_light = stats1.errors_side_light + 1;
    end
    if (!match_walk_on) begin
      if (stats1.errors_walk_on == 0) stats1.errortime_walk_on = $time;
      stats1.errors_walk_on = stats1.errors_walk_on + 1;
    end
  end

  integer i;
  integer j;
  initial begin
    rst_n <= 1'b0;
    car <= 1'b1;
    walk <= 1'b1;
    repeat (2) @(negedge clk);
    rst_n <= 1'b1;
    car <= 1'b0;
    walk <= 1'b0;
    // Nothing to do: main stays green. Then one press, one round.
    repeat (20) @(negedge clk);
    walk <= 1'b1;
    @(negedge clk) walk <= 1'b0;
    repeat (30) @(negedge clk);
    // A car all the time: longest side green, shortest main green.
    car <= 1'b1;
    repeat (56) @(negedge clk);
    car <= 1'b0;
    repeat (8) @(negedge clk);
    // One press at every possible place of a round that a car started; around the beginning of side green
    // long enough to see whether the press causes another round.
    for (i = 0; i < 13; i = i + 1) begin
      rst_n <= 1'b0;
      @(negedge clk) rst_n <= 1'b1;
      repeat (8) @(negedge clk);
      car <= 1'b1;
      for (j = 0; j < ((i >= 3 && i < 7) ? 36 : 18); j = j + 1) begin
        @(negedge clk) walk <= (j == i);
        car <= (j < i - 5);
      end
      walk <= 1'b0;
    end
    car <= 1'b0;
    repeat (20) @(negedge clk);
    // Random traffic: single cars, jams, presses; now and then a reset.
    repeat (12) begin
      i = $random & 3;
      repeat (25) @(negedge clk) begin
        car <= (i == 0) ? 1'b0 : (i == 1) ? ($urandom & 7) == 0 : ($random & 7) != 0;
        walk <= ($random & 15) == 0;
        rst_n <= ($urandom & 63) != 0;
      end
    end
    @(posedge clk);
    #1 $finish;
  end

  initial begin
    #200000;
    $display("TIMEOUT");
    $finish;
  end

  final begin
    if (stats1.errors_main_light != 0)
      $display("Hint: Output 'main_light' has %0d mismatches. First mismatch occurred at time %0d.",
               stats1.errors_main_light, stats1.errortime_main_light);
    else
      $display("Hint: Output 'main_light' has no mismatches.");
    if (stats1.errors_side_light != 0)
      $display("Hint: Output 'side_light' has %0d mismatches. First mismatch occurred at time %0d.",
               stats1.errors_side_light, stats1.errortime_side_light);
    else
      $display("Hint: Output 'side_light' has no mismatches.");
    if (stats1.errors_walk_on != 0)
      $display("Hint: Output 'walk_on' has %0d mismatches. First mismatch occurred at time %0d.",
               stats1.errors_walk_on, stats1.errortime_walk_on);
    else
      $display("Hint: Output 'walk_on' has no mismatches.");
    $display("Mismatches: %0d in %0d samples", stats1.errors, stats1.clocks);
  end

endmodule
