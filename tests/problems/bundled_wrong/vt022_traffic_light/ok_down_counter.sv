// Right: one-hot phases with a timer that counts down.
module TopModule (
  input  logic       clk,
  input  logic       rst_n,
  input  logic       car,
  input  logic       walk,
  output logic [2:0] main_light,
  output logic [2:0] side_light,
  output logic       walk_on
);

  reg [5:0] at;
  reg [3:0] rest;
  reg [3:0] walk_left;
  reg       wish;
  reg       go;

  always @* begin
    go = 1'b0;
    if (at[0]) go = (rest == 0) & (car | wish);
    if (at[3]) go = (rest == 0) | (~car & (rest <= 5));
    if (at[1] | at[2] | at[4] | at[5]) go = (rest == 0);
  end

  always @(posedge clk, negedge rst_n)
    if (~rst_n) begin
      at <= 6'b000001;
      rest <= 7;
      walk_left <= 0;
      wish <= 0;
    end else begin
      wish <= wish | walk;
      if (walk_left != 0) walk_left <= walk_left - 1;
      if (rest != 0) rest <= rest - 1;
      if (go) begin
        at <= {at[4:0], at[5]};
        rest <= at[0] ? 2 : at[2] ? 9 : at[3] ? 1 : at[5] ? 7 : 0;
        if (at[2]) begin
          wish <= 0;
          walk_left <= (wish | walk) ? 4 : 0;
        end
      end
    end

  assign main_light = {~at[0] & ~at[1], at[1], at[0]};
  assign side_light = {~at[3] & ~at[4], at[4], at[3]};
  assign walk_on = |walk_left;

endmodule
