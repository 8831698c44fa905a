// Bench of vt029_saturating_mac: fixed-point multiply-accumulate with saturation.
`timescale 1ps/1ps

module tb;

  typedef struct packed {
    int errors;
    int errortime;
    int errors_acc;
    int errortime_acc;
    int errors_saturated;
    int errortime_saturated;
    int errors_y;
    int errortime_y;
    int clocks;
  } stats;

  stats stats1;

  reg clk = 0;
  always #5 clk = ~clk;

  logic        rst_n;
  logic        valid;
  logic        clear;
  logic [7:0]  a;
  logic [7:0]  b;
  wire  [17:0] acc_ref;
  wire  [17:0] acc_dut;
  wire         saturated_ref;
  wire         saturated_dut;
  wire  [7:0]  y_ref;
  wire  [7:0]  y_dut;

  RefModule good1 (
    .clk(clk),
    .rst_n(rst_n),
    .valid(valid),
    .clear(clear),
    .a(a),
    .b(b),
    .acc(acc_ref),
    .saturated(saturated_ref),
    .y(y_ref)
  );

  TopModule top_module1 (
    .clk(clk),
    .rst_n(rst_n),
    .valid(valid),
    .clear(clear),
    .a(a),
    .b(b),
    .acc(acc_dut),
    .saturated(saturated_dut),
    .y(y_dut)
  );

  // Where the reference is unknown anything goes; where the design alone is unknown it is wrong.
  wire  [17:0] open_acc = acc_ref ^ acc_ref;
  wire         match_acc = (acc_dut ^ open_acc) === (acc_ref ^ open_acc);
  wire         open_saturated = saturated_ref ^ saturated_ref;
  wire         match_saturated = (saturated_dut ^ open_saturated) === (saturated_ref ^ open_saturated);
  wire  [7:0]  open_y = y_ref ^ y_ref;
  wire         match_y = (y_dut ^ open_y) === (y_ref ^ open_y);
  wire         tb_match = match_acc && match_saturated && match_y;

  always @(posedge clk or negedge clk) begin
    stats1.clocks = stats1.clocks + 1;
    if (!tb_match) begin
      if (stats1.errors == 0) stats1.errortime = $time;
      stats1.errors = stats1.errors + 1;
    end
    if (!match_acc) begin
      if (stats1.errors_acc == 0) stats1.errortime_acc = $time;
      stats1.errors_acc = stats1.errors_acc + 1;
    end
    if (!match_saturated) begin
      if (stats1.errors_saturated == 0) stats1.errortime_saturated = $time;
      stats1.errors_saturated = stats1.errors_saturated + 1;
    end
    if (!match_y) begin
      if (stats1.errors_y == 0) stats1.errortime_y = $time;
      stats1.errors_y = stats1.errors_y + 1;
    end
  end

  integer i;
  reg [2:0] style;
  initial begin
    rst_n <= 1'b0;
    valid <= 1'b1;
    clear <= 1'b0;
    a <= 8'd5;
    b <= 8'd7;
    repeat (3) @(posedge clk);
    rst_n <= 1'b1;
    valid <= 1'b0;
    repeat (2) @(posedge clk);
    // Up to the upper end and down to the lower one with the largest products, then back.
    for (i = 0; i < 60; i = i + 1) @(posedge clk) begin
      valid <= 1'b1;
      clear <= (i == 0) || (i == 40);
      a <= 8'h80;
      b <= (i < 12) ? 8'h80 : (i < 36) ? 8'h7f : (i < 38) ? 8'h80 : 8'h7f;
    end
    @(posedge clk) valid <= 1'b0;
    clear <= 1'b1;
    @(posedge clk) clear <= 1'b0;
    @(posedge clk);
    // Around the rounding points and around the ends of the output: steps of 64 and of 1.
    for (i = 0; i < 24; i = i + 1) @(posedge clk) begin
      valid <= 1'b1;
      clear <= (i == 0) || (i == 12);
      a <= (i == 0) ? 8'd127 : (i == 12) ? 8'h80 : (i < 12) ? 8'd1 : 8'hff;
      b <= (i == 0) ? 8'd127 : (i == 12) ? 8'd127 : (i & 1) ? 8'd63 : 8'd1;
    end
    // Random sums: small, large of one sign, mixed.
    repeat (30) begin
      style = $random;
      repeat (14) @(posedge clk) begin
        valid <= ($random & 7) != 0;
        clear <= ($urandom % 12) == 0;
        a <= style[2] ? {1'b0, 7'h7f} - ($random & 15) : $random;
        b <= style[1] ? {style[0], {7{~style[0]}}} ^ ($random & 7) : $random;
        if (style == 3'd0) begin
          a <= $random & 15;
          b <= ($urandom & 15) - 8'd8;
        end
        rst_n <= ($urandom & 127) != 0;
      end
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
    if (stats1.errors_acc != 0)
      $display("Hint: Output 'acc' has %0d mismatches. First mismatch occurred at time %0d.",
               stats1.errors_acc, stats1.errortime_acc);
    else
      $display("Hint: Output 'acc' has no mismatches.");
    if (stats1.errors_saturated != 0)
      $display("Hint: Output 'saturated' has %0d mismatches. First mismatch occurred at time %0d.",
               stats1.errors_saturated, stats1.errortime_saturated);
    else
      $display("Hint: Output 'saturated' has no mismatches.");
    if (stats1.errors_y != 0)
      $display("Hint: Output 'y' has %0d mismatches. First mismatch occurred at time %0d.",
               stats1.errors_y, stats1.errortime_y);
    else
      $display("Hint: Output 'y' has no mismatches.");
    $display("Mismatches: %0d in %0d samples", stats1.errors, stats1.clocks);
  end

endmodule
